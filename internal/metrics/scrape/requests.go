package scrape

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandboxd/internal/fault"
)

// To says what a request is for.
type To string

// What requests are for: the hosts of sandboxes, by what they lead to, and the dashboard's own host.
const (
	Terminal  To = "terminal"
	Port      To = "port"
	Service   To = "service"
	IDE       To = "ide"
	Dashboard To = "dashboard"
	API       To = "api"
	Health    To = "health"  // the checks of load balancers
	Unknown   To = "unknown" // a host that is none of ours
)

// requests counts HTTP requests.
type requests struct {
	failures  *prometheus.CounterVec
	total     *prometheus.CounterVec
	firstByte *prometheus.HistogramVec
	open      *prometheus.GaugeVec
}

func newRequests(failures *prometheus.CounterVec) *requests {
	r := &requests{
		failures:  failures,
		total:     counter("http_requests_total", "HTTP requests that were answered, by what they were for and the class of the status.", "to", "code"),
		firstByte: histogram("http_first_byte_seconds", "From the arrival of a request to the head of its answer, a wake included.", quick, "to"),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "http_requests_open", Help: "HTTP requests, streams and WebSockets under way.",
		}, []string{"to"}),
	}
	for _, to := range []To{Terminal, Port, Service, IDE, Dashboard, API, Health, Unknown} {
		r.open.WithLabelValues(string(to))
		r.total.WithLabelValues(string(to), "2xx")
	}
	return r
}

func (r *requests) collectors() []prometheus.Collector {
	return []prometheus.Collector{r.total, r.firstByte, r.open}
}

// Opened notes that a request has arrived. ended must be called when it is over, streams included.
func (r *requests) Opened(to To) (ended func()) {
	open := r.open.WithLabelValues(string(to))
	open.Inc()
	return open.Dec
}

// Answered notes the head of an answer. An error of a sandbox's own program is none of sandboxd's.
func (r *requests) Answered(to To, status int, after time.Duration) {
	r.total.WithLabelValues(string(to), class(status)).Inc()
	r.firstByte.WithLabelValues(string(to)).Observe(after.Seconds())
	if status >= http.StatusBadRequest && (to == Dashboard || to == API) {
		r.failures.WithLabelValues(string(to), kindOf(status)).Inc()
	}
}

func class(status int) string {
	classes := [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}
	if n := status/100 - 1; n >= 0 && n < len(classes) {
		return classes[n]
	}
	return "other"
}

// kindOf is the name of the kind of error that web answers with a status.
func kindOf(status int) string {
	kind := fault.Internal
	switch status {
	case http.StatusUnauthorized:
		kind = fault.Unauthenticated
	case http.StatusForbidden:
		kind = fault.Forbidden
	case http.StatusNotFound:
		kind = fault.NotFound
	case http.StatusConflict:
		kind = fault.Conflict
	case http.StatusGone:
		kind = fault.Gone
	case http.StatusRequestEntityTooLarge:
		kind = fault.TooLarge
	case http.StatusTooManyRequests:
		kind = fault.Limited
	case http.StatusServiceUnavailable:
		kind = fault.Unavailable
	case http.StatusGatewayTimeout:
		kind = fault.Timeout
	default:
		if status < http.StatusInternalServerError {
			kind = fault.Invalid
		}
	}
	return kind.String()
}
