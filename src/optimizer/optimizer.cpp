#include "graphscale/optimizer.hpp"
