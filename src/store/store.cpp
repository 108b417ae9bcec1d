#include "graphscale/store.hpp"
