// Talker writes lines, each with a call of its own, as programs that do not buffer do.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "clock" {
		clock()
	}
	loud()
}

// loud writes a line each millisecond, and makes up for those it could not write in time.
func loud() {
	begun, n := time.Now(), 0
	for range time.Tick(time.Millisecond) {
		for due := int(time.Since(begun).Milliseconds()); n < due; n++ {
			fmt.Printf("%d GET /api/v1/things/%d answered 200 with %d bytes in %d ms to 10.0.0.%d\n",
				n+1, rand.IntN(5000), rand.IntN(20000), rand.IntN(900), rand.IntN(250))
		}
	}
}

// clock writes the time about eight times a second, in nanoseconds since 1970.
func clock() {
	for {
		fmt.Println(time.Now().UnixNano())
		<-time.After(100*time.Millisecond + rand.N(50*time.Millisecond))
	}
}
