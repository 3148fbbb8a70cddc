"""Commands about signatures of images: one asks, one answers others."""
