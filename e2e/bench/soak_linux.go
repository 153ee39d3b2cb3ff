package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
)

func soak(context.Context, []string) error { return errors.Join(flag.ErrHelp, fmt.Errorf("")) }
