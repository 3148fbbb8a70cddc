"""The forms in which API servers give first lists."""

# Lists in pages, each read from etcd at the revision of the first: as of an API server before 1.34,
# or of one that was told so.
FEATURES = "--feature-gates=WatchList=false,ListFromCacheSnapshot=false"
