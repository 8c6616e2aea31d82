package docker

import (
	"encoding/binary"
	"os"
	"path/filepath"

	"sandboxd/internal/fault"
)

// How CRIU's files begin: with two numbers, of all and of their kind. Then come messages (protobuf), each after its length in four bytes.
const (
	criuMagic  = 0x54564319
	criuUTS    = 0x54473203 // names of the host
	criuMounts = 0x55563928
	criuHead   = 8
	criuLength = 4
)

// Fields of CRIU's messages.
const (
	utsName       = 1
	mountMaster   = 11 // the group of mounts of the host that it gets changes from
	mountExternal = 18 // set for a mount that the engine makes
)

// adapt makes a checkpoint one for another container: its processes get that one's host name, so that those of a clone begin with their own.
// It changes what CRIU restores from: nothing is run in the sandbox for it, which could be a program of the sandbox's.
//
// The mounts that the engine makes get no changes from the host any more. CRIU gives all of one group what the first of them has, which
// fails where that is a mount of its own, as a read-only volume is.
func adapt(folder, host string) error {
	err := change(folder, "utsns-*.img", criuUTS, func(fields []criuField) {
		for i := range fields {
			if fields[i].number == utsName {
				fields[i].text = []byte(host)
			}
		}
	})
	if err != nil {
		return err
	}
	return change(folder, "mountpoints-*.img", criuMounts, func(fields []criuField) {
		external := false
		for _, f := range fields {
			external = external || f.number == mountExternal
		}
		for i := range fields {
			if external && fields[i].number == mountMaster {
				fields[i].value = 0
			}
		}
	})
}

// change changes all messages of the one file that pattern matches.
func change(folder, pattern string, kind uint32, edit func([]criuField)) error {
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return fault.New(fault.Unavailable, "It has %d files %s, and one was expected: programs in it have name spaces of their own.", len(files), pattern)
	}
	image, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	changed, ok := edited(image, kind, edit)
	if !ok {
		return fault.New(fault.Unavailable, "Its file %s is in a format that is not known. It may be of another version of CRIU.", filepath.Base(files[0]))
	}
	fresh := files[0] + partFile // the file may be a link to the one that is kept
	if err := os.WriteFile(fresh, changed, checkpointFile); err != nil {
		return err
	}
	return os.Rename(fresh, files[0])
}

// criuField is a field of a message: a number, or text when that is not nil.
type criuField struct {
	number uint64
	value  uint64
	text   []byte
}

// The ways in which fields are written.
const (
	wireNumber = 0
	wireText   = 2
)

// edited gives an image of that kind with its messages changed; false when it is none.
func edited(image []byte, kind uint32, edit func([]criuField)) (out []byte, ok bool) {
	if len(image) <= criuHead || binary.LittleEndian.Uint32(image) != criuMagic || binary.LittleEndian.Uint32(image[4:]) != kind {
		return nil, false
	}
	out = append(out, image[:criuHead]...)
	for rest := image[criuHead:]; len(rest) > 0; {
		if len(rest) < criuLength {
			return nil, false
		}
		size := uint64(binary.LittleEndian.Uint32(rest))
		if rest = rest[criuLength:]; size > uint64(len(rest)) {
			return nil, false
		}
		fields, ok := fieldsOf(rest[:size])
		if !ok {
			return nil, false
		}
		edit(fields)
		message := written(fields)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(message)))
		out, rest = append(out, message...), rest[size:]
	}
	return out, true
}

func fieldsOf(message []byte) (fields []criuField, ok bool) {
	next := func() (uint64, bool) {
		v, n := binary.Uvarint(message)
		if n <= 0 {
			return 0, false
		}
		message = message[n:]
		return v, true
	}
	for len(message) > 0 {
		tag, ok := next()
		value, more := next()
		f := criuField{number: tag >> 3, value: value}
		switch {
		case !ok || !more:
			return nil, false
		case tag&7 == wireText && value <= uint64(len(message)):
			f.text, message = message[:value:value], message[value:]
		case tag&7 != wireNumber:
			return nil, false
		}
		fields = append(fields, f)
	}
	return fields, true
}

func written(fields []criuField) (message []byte) {
	for _, f := range fields {
		if f.text == nil {
			message = binary.AppendUvarint(message, f.number<<3|wireNumber)
			message = binary.AppendUvarint(message, f.value)
			continue
		}
		message = binary.AppendUvarint(message, f.number<<3|wireText)
		message = binary.AppendUvarint(message, uint64(len(f.text)))
		message = append(message, f.text...)
	}
	return message
}
