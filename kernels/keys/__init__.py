"""Keys to dense ids: by hashing their values or bytes, or by their range where that is small."""
