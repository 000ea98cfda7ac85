"""Which ringfence this is; saves say which one wrote them."""

VERSION = "0.1.0"
