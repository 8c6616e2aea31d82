package main

import (
	"github.com/spf13/cobra"

	"sandboxd/internal/alert/shoutrrr"
)

// sendChat is the name of newSendChatCmd's command.
const sendChat = "send-chat"

// ownProgram is this very program, also when its path holds another one by now.
const ownProgram = "/proc/self/exe"

// newSendChatCmd makes the hidden command that sends one message to a chat service, in a process of its own. It opens neither the
// database nor the log.
func newSendChatCmd() *cobra.Command {
	return &cobra.Command{
		Use:    sendChat,
		Short:  "Send the message on standard input to a chat service",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if code := shoutrrr.Main(); code != 0 {
				return exitStatus(code)
			}
			return nil
		},
	}
}
