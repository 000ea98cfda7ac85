"""Join ringfence to other libraries: one file each, independent of each other, imported only on use."""
