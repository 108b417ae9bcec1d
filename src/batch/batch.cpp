#include "graphscale/batch.hpp"
