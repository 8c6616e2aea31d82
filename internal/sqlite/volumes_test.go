package sqlite

import (
	"testing"

	"sandboxd/internal/volume/volumetest"
)

func TestVolumes_KeepTheirContract(t *testing.T) { volumetest.StoreContract(t, fresh(t).Volumes()) }
