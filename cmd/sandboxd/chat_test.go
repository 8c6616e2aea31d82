package main

import "testing"

func TestModels_TheLongestPrefixSaysWhatTheyCan(t *testing.T) {
	for model, can := range map[string]bool{
		"claude-sonnet-4-5": true, "gpt-5": true, "gpt-3.5-turbo": false, "llama3.1:8b": false, "llama3.2-vision:11b": true, "qwen3:4b": false, "qwen3-vl:8b": true, "": true,
	} {
		if sees(model) != can {
			t.Errorf("%q sees: %v", model, !can)
		}
	}
}
