// CMake wants a source beside a precompiled header.
