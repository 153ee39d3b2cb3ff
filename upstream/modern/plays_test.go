package modern

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"mcp-gateway/upstream/upstreamtest"
)

// played names the environment variable that makes the test binary one of the plays.
const played = "MODERN_TEST_PLAY"

// plays are servers over stdio that a script of requests cannot play. Each gives its exit status.
var plays = map[string]func() int{
	// answers its first line with the text of ANSWER, and nothing else
	"answer": func() int {
		in := bufio.NewReader(os.Stdin)
		if _, err := in.ReadString('\n'); err != nil {
			return 1
		}
		fmt.Println(os.Getenv("ANSWER"))
		_, _ = in.ReadString('\x00')
		return 0
	},
	// answers its first line as the one above, closes its output at the second, and outlives its input
	"hangs up": func() int {
		in := bufio.NewReader(os.Stdin)
		if _, err := in.ReadString('\n'); err != nil {
			return 1
		}
		fmt.Println(os.Getenv("ANSWER"))
		_, _ = in.ReadString('\n')
		os.Stdout.Close()
		<-time.After(time.Hour)
		return 0
	},
	// ends at its first line, with last words
	"fails": func() int {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Fprintln(os.Stderr, "expected initialize; my key is", os.Getenv("SECRET"))
		fmt.Fprintln(os.Stderr, "giving up")
		return 7
	},
	"listened": listened,
	// records its input in the file FILE, and says nothing if SILENT is set
	"recorder": func() int {
		file, err := os.Create(os.Getenv("FILE"))
		if err != nil {
			return 1
		}
		defer file.Close()
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			line := in.Text()
			fmt.Fprintln(file, line)
			_, rest, asks := strings.Cut(line, `"id":`)
			id, _, _ := strings.Cut(rest, ",")
			if asks && os.Getenv("SILENT") == "" {
				fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", id, upstreamtest.Discovered)
			}
		}
		return 0
	},
}
