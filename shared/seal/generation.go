package seal

// GenerationOf reads from sealed bytes, without opening them, which generation
// of the tenant's key they are under; false for bytes that are not sealed.
func GenerationOf(sealed []byte) (int64, bool) {
	h, err := readHeader(sealed)
	return h.generation, err == nil
}
