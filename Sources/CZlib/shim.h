#pragma once
#ifdef __linux__
// What the C library declares belongs to Swift's module of it, whichever module is loaded first.
#pragma clang module import SwiftGlibc
#endif
#include <zlib.h>
