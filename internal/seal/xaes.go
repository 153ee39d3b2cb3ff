package seal

import (
	"crypto/aes"
	"crypto/cipher"
)

// A subkey is a key of XAES-256-GCM (https://c2sp.org/XAES-256-GCM). AES-GCM alone is safe for 2^32 random nonces with one
// key, which replicas that share a key can spend; here the first half of a nonce of 24 bytes picks the key of the message.
type subkey struct {
	block cipher.Block
	mask  [aes.BlockSize]byte // K1 of CMAC
}

func newSubkey(secret []byte) *subkey {
	k := &subkey{block: newBlock(secret)}
	k.block.Encrypt(k.mask[:], k.mask[:])
	var carry byte
	for i := len(k.mask) - 1; i >= 0; i-- {
		k.mask[i], carry = k.mask[i]<<1|carry, k.mask[i]>>7
	}
	k.mask[aes.BlockSize-1] ^= carry * 0x87
	return k
}

// aead is the cipher of the messages with this salt. The rest of the nonce is random: Seal puts it before the ciphertext,
// where Open expects it.
func (k *subkey) aead(salt []byte) cipher.AEAD {
	var secret [KeySize]byte
	for i := range 2 {
		half := secret[i*aes.BlockSize:][:aes.BlockSize]
		half[1], half[2] = byte(i+1), 'X'
		copy(half[4:], salt)
		for j := range half {
			half[j] ^= k.mask[j]
		}
		k.block.Encrypt(half, half)
	}
	aead, err := cipher.NewGCMWithRandomNonce(newBlock(secret[:]))
	if err != nil {
		panic(err) // only of a block of another size
	}
	return aead
}

func newBlock(secret []byte) cipher.Block {
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic(err) // only of a key of another length
	}
	return block
}
