"""The function libraries: ndimage, linalg, fft, random, the array API standard, Cog's names."""
