package gatewaytest

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestRandomModel_IsAFileOfItsFormatAndTheSameEachTime(t *testing.T) {
	model := RandomModel()
	var head struct {
		Magic         [4]byte
		Version       uint32
		Tensors, Keys uint64
	}
	if err := binary.Read(bytes.NewReader(model), binary.LittleEndian, &head); err != nil {
		t.Fatal(err)
	}
	if string(head.Magic[:]) != "GGUF" || head.Version != 3 || head.Tensors != 3+ggufLayers*9 || len(model) > 2<<20 || len(model)%32 != 0 {
		t.Errorf("%+v of %d bytes", head, len(model))
	}
	if !bytes.Equal(model, RandomModel()) {
		t.Error("another time it is another")
	}
}
