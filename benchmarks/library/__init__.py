"""Every function of the library: how many kernels it takes, how exact it is, and how fast beside other libraries."""
