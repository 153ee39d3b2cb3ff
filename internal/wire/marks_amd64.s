//go:build !purego

#include "textflag.h"

// MARKS puts the bits for 16 bytes of text in A.
#define MARKS(offset, A) \
	MOVOU offset(SI), X0 \
	MOVOU X0, X1 \
	MOVOU X0, X2 \
	MOVOU X0, X3 \
	PCMPEQB X4, X1 \
	PCMPEQB X5, X2 \
	PMINUB X6, X3 \
	PCMPEQB X0, X3 \
	POR X2, X1 \
	POR X3, X1 \
	PMOVMSKB X1, A

// SPREAD puts eight bytes in both halves of X.
#define SPREAD(bytes, X) \
	MOVQ bytes, AX \
	MOVQ AX, X \
	PUNPCKLQDQ X, X

// func marksOf(dst *uint64, text *byte, groups int)
TEXT ·marksOf(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ text+8(FP), SI
	MOVQ groups+16(FP), CX
	SPREAD($0x2222222222222222, X4) // quotes
	SPREAD($0x5c5c5c5c5c5c5c5c, X5) // backslashes
	SPREAD($0x1f1f1f1f1f1f1f1f, X6) // the last control character
	JMP check

next:
	MARKS(0, AX)
	MARKS(16, BX)
	MARKS(32, DX)
	MARKS(48, R8)
	SHLQ $16, BX
	SHLQ $32, DX
	SHLQ $48, R8
	ORQ BX, AX
	ORQ DX, AX
	ORQ R8, AX
	MOVQ AX, (DI)
	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX

check:
	TESTQ CX, CX
	JNE next
	RET
