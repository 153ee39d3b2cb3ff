package legacy

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"
)

// plays are servers that a script of requests cannot play. Each gives its exit status.
var plays = map[string]func() int{
	// answers initialize with the text of ANSWER, and nothing else
	"answer": func() int {
		in := bufio.NewReader(os.Stdin)
		if _, err := in.ReadString('\n'); err != nil {
			return 1
		}
		fmt.Println(os.Getenv("ANSWER"))
		_, _ = in.ReadString('\x00')
		return 0
	},
	// answers initialize as the one above, and outlives its stdin
	"stays": func() int {
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return 1
		}
		fmt.Println(os.Getenv("ANSWER"))
		<-time.After(time.Hour)
		return 0
	},
	// ends at once, with last words
	"fails": func() int {
		fmt.Fprintln(os.Stderr, "cannot open the database at", os.Getenv("SECRET"))
		fmt.Fprintln(os.Stderr, "giving up")
		return 7
	},
	// never says a word
	"silent": func() int {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\x00')
		return 0
	},
	// records its input in the file FILE
	"recorder": func() int {
		file, err := os.Create(os.Getenv("FILE"))
		if err != nil {
			return 1
		}
		defer file.Close()
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Fprintln(file, in.Text())
			switch line := in.Text(); {
			case strings.Contains(line, `"initialize"`):
				fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"r","version":"1"},"instructions":"be kind"}}`)
			case strings.Contains(line, `"id":2`):
				fmt.Println(`{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`)
			}
		}
		return 0
	},
	// shakes hands, then closes its stdin and stays
	"closes stdin": func() int {
		in := bufio.NewReader(os.Stdin)
		for range 3 { // initialize, initialized, and one call that it never answers
			line, err := in.ReadString('\n')
			if err != nil {
				return 1
			}
			if strings.Contains(line, `"initialize"`) {
				fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
			}
		}
		os.Stdin.Close()
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		<-time.After(time.Hour)
		return 0
	},
}
