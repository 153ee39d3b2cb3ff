//go:build !purego

#include "textflag.h"

// ESCAPES puts the bits for 16 bytes of text in A and B.
#define ESCAPES(offset, A, B) \
	MOVOU offset(SI), X1 \
	MOVOU offset+1(SI), X2 \
	PCMPEQB X0, X1 \
	PAND X3, X2 \
	PCMPEQB X3, X2 \
	PAND X1, X2 \
	PMOVMSKB X1, A \
	PMOVMSKB X2, B

// func escapesOf(text *byte) (slashes, special uint64)
TEXT ·escapesOf(SB), NOSPLIT, $0-24
	MOVQ text+0(FP), SI
	MOVQ $0x2525252525252525, R8 // the bits that `/` and `u` share
	MOVQ R8, X3
	PUNPCKLQDQ X3, X3
	MOVQ $0x5c5c5c5c5c5c5c5c, R8
	MOVQ R8, X0
	PUNPCKLQDQ X0, X0
	ESCAPES(48, AX, BX)
	ESCAPES(32, CX, DX)
	SHLQ $16, AX
	SHLQ $16, BX
	ORQ CX, AX
	ORQ DX, BX
	ESCAPES(16, CX, DX)
	SHLQ $16, AX
	SHLQ $16, BX
	ORQ CX, AX
	ORQ DX, BX
	ESCAPES(0, CX, DX)
	SHLQ $16, AX
	SHLQ $16, BX
	ORQ CX, AX
	ORQ DX, BX
	MOVQ AX, slashes+8(FP)
	MOVQ BX, special+16(FP)
	RET
