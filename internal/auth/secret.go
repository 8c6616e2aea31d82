package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
)

const (
	secretBytes  = 32 // 256 bits: beyond guessing
	secretLength = 43 // base62 digits that hold 256 bits
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// newSecret makes a random secret of secretLength base62 digits.
func newSecret() string {
	var b [secretBytes]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return encode62(b)
}

// encode62 writes b as a number of secretLength base62 digits, with leading zeros.
func encode62(b [secretBytes]byte) string {
	var out [secretLength]byte
	n, base, digit := new(big.Int).SetBytes(b[:]), big.NewInt(int64(len(base62))), new(big.Int)
	for i := len(out) - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = base62[digit.Int64()]
	}
	return string(out[:])
}

// keyOf hashes a secret for keeping and for finding.
func keyOf(secret string) Key { return sha256.Sum256([]byte(secret)) }

// plausible reports whether secret has the form that newSecret makes. It spares the store what cannot be there.
func plausible(secret string) bool {
	if len(secret) != secretLength {
		return false
	}
	for i := range len(secret) {
		if c := secret[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// newID makes a random id of 16 hex digits for a row. It is no secret.
func newID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}
