package metrics

import "time"

// Host is what the host has and uses now. A figure that this host does not tell is 0, Pressure nil.
type Host struct {
	Time  time.Time
	Cores int // CPUs that the host has

	CPU                                       float64 // cores in use, the mean over the last step
	Memory, MemoryTotal, SwapUsed, SwapTotal  int64   // bytes; Memory is what cannot be given to programs
	DiskUsed, DiskFree                        int64   // bytes, of the file system of the engine's data; DiskFree as for an unprivileged user
	NetworkRx, NetworkTx, DiskRead, DiskWrite int64   // bytes within the last step
	Load                                      [3]float64
	Pressure                                  *Pressure // nil where the kernel does not measure it
}

// Pressure is the share of the last ten seconds, 0 to 1, in which some task waited for a resource.
type Pressure struct {
	CPU, Memory, IO float64
}
