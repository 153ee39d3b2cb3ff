package wire

// space is the place of the next token at or after i.
func space(d []byte, i int) int {
	for i < len(d) && d[i] <= ' ' && (d[i] == ' ' || d[i] == '\n' || d[i] == '\r' || d[i] == '\t') {
		i++
	}
	return i
}

// skipAtom reads the number or literal at i.
func skipAtom(d []byte, i int) int {
	switch rest := d[i:]; rest[0] {
	case 't':
		if len(rest) >= 4 && string(rest[:4]) == "true" {
			return i + 4
		}
	case 'f':
		if len(rest) >= 5 && string(rest[:5]) == "false" {
			return i + 5
		}
	case 'n':
		if len(rest) >= 4 && string(rest[:4]) == "null" {
			return i + 4
		}
	default:
		return skipNumber(d, i)
	}
	return ^i
}

func skipNumber(d []byte, i int) int {
	if i < len(d) && d[i] == '-' {
		i++
	}
	whole := i
	if i = skipDigits(d, i); i == whole || d[whole] == '0' && i > whole+1 {
		return ^i
	}
	if i < len(d) && d[i] == '.' {
		fraction := i + 1
		if i = skipDigits(d, fraction); i == fraction {
			return ^i
		}
	}
	if i < len(d) && d[i]|0x20 == 'e' {
		if i++; i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		exponent := i
		if i = skipDigits(d, i); i == exponent {
			return ^i
		}
	}
	return i
}

func skipDigits(d []byte, i int) int {
	for i < len(d) && d[i]-'0' <= 9 {
		i++
	}
	return i
}
