package s3

// PartsAbove sends bodies above a size in parts: small ones do for a test.
func (b *Bucket) PartsAbove(bytes int64) { b.partsAbove = bytes }
