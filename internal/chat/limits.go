package chat

// What a person reads when a turn has ended at a limit of the server. The flags are those of sandboxd serve.
const (
	AtSteps  = "The turn reached this server's limit of steps. Resume to continue it. An admin can raise the limit with --turn-steps."
	AtTokens = "The turn reached this server's limit of tokens. Resume to continue it. An admin can raise the limit with --turn-tokens."
	AtMoney  = "The turn reached this server's limit of money. Resume to continue it. An admin can raise the limit with --turn-dollars."
	AtTime   = "The turn reached this server's limit of time. Resume to continue it. An admin can raise the limit with --turn-time."
)
