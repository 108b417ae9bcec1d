#include "graphscale/exchange.hpp"
