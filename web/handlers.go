package web

import (
	"sync"
	"time"

	"sandboxd/internal/semaphore"
)

// Handlers of one resource each. What they share is in Server, through which they also reach each other.
type (
	fileHandlers struct {
		*Server
		ofVolumes bool // not of sandboxes
	}
	commandHandlers  struct{ *Server } // commands, terminals, ports and SSH
	serviceHandlers  struct{ *Server }
	portHandlers     struct{ *Server }
	ideHandlers      struct{ *Server }
	accountHandlers  struct{ *Server } // signing in, users and tokens
	templateHandlers struct{ *Server } // and their images
	listHandlers     struct{ *Server } // the front page
	filterHandlers   struct{ *Server } // of the list, that people have saved
	manyHandlers     struct{ *Server } // what the list does with several sandboxes
	sandboxHandlers  struct{ *Server } // what they are, and their power
	creationHandlers struct {          // the form for a new one
		*Server
		typed typedForms
	}
	workspaceHandlers struct{ *Server } // the pages of one sandbox
	sizeHandlers      struct{ *Server } // its limits
	restHandlers      struct{ *Server } // when it rests, and what keeps it awake
	orphanHandlers    struct{ *Server } // sandboxes without a record
	liveHandlers      struct{ *Server } // live connections, and streams of events
	logHandlers       struct {
		*Server
		searching *semaphore.Keyed // by user
	}
	processHandlers struct { // sandboxd itself
		*Server
		failing sync.Map // parts that did not answer when they were last asked, by name
	}
	metricsHandlers      struct{ *Server } // what a sandbox and the host use
	hostHandlers         struct{ *Server } // the page of the host
	activityHandlers     struct{ *Server } // who did what
	alertHandlers        struct{ *Server }
	backupHandlers       struct{ *Server } // and what is made of them
	backupFormHandlers   struct{ *Server } // what people do with them
	scheduleHandlers     struct{ *Server } // of backups
	repositoryHandlers   struct{ *Server } // where backups can be
	snapshotHandlers     struct{ *Server } // and clones
	snapshotFormHandlers struct{ *Server } // what people do with them
	updateHandlers       struct{ *Server } // of sandboxes to newer images
	alertSettingHandlers struct{ *Server } // rules and channels
	volumeHandlers       struct{ *Server } // that several sandboxes have
	providerHandlers     struct {          // of models
		*Server
		limit time.Duration // of a check
	}
	aliasHandlers struct{ *Server } // of models
	modelHandlers struct {          // what is set for all models
		*Server
		settings sync.Mutex // held while the settings are changed
	}
	chatHandlers  struct{ *Server } // conversations with agents
	agentHandlers struct{ *Server } // agents of others, in sandboxes
)

// handlers are all of them.
type handlers struct {
	files         *fileHandlers
	commands      *commandHandlers
	services      *serviceHandlers
	ports         *portHandlers
	ide           *ideHandlers
	accounts      *accountHandlers
	templates     *templateHandlers
	ownTemplates  *ownTemplateHandlers
	sandboxes     *sandboxHandlers
	list          *listHandlers
	filters       *filterHandlers
	many          *manyHandlers
	creation      *creationHandlers
	workspace     *workspaceHandlers
	size          *sizeHandlers
	rest          *restHandlers
	orphans       *orphanHandlers
	live          *liveHandlers
	logs          *logHandlers
	process       *processHandlers
	metrics       *metricsHandlers
	host          *hostHandlers
	activity      *activityHandlers
	alerts        *alertHandlers
	backups       *backupHandlers
	backupForms   *backupFormHandlers
	schedules     *scheduleHandlers
	repositories  *repositoryHandlers
	snapshots     *snapshotHandlers
	snapshotForms *snapshotFormHandlers
	updates       *updateHandlers
	alertSettings *alertSettingHandlers
	modelCalls    *modelCallHandlers
	usage         *usageHandlers
	volumes       *volumeHandlers
	volumeFiles   *fileHandlers
	providers     *providerHandlers
	aliases       *aliasHandlers
	models        *modelHandlers
	chat          *chatHandlers
	agents        *agentHandlers
	sharedChat    *sharedChatHandlers
	trials        *trialHandlers
}

func newHandlers(s *Server) handlers {
	return handlers{
		files: &fileHandlers{Server: s}, commands: &commandHandlers{s}, services: &serviceHandlers{s}, ports: &portHandlers{s}, ide: &ideHandlers{s},
		accounts: &accountHandlers{s}, templates: &templateHandlers{s}, ownTemplates: &ownTemplateHandlers{s}, sandboxes: &sandboxHandlers{s}, creation: &creationHandlers{Server: s}, list: &listHandlers{s}, filters: &filterHandlers{s}, many: &manyHandlers{s}, workspace: &workspaceHandlers{s}, size: &sizeHandlers{s}, rest: &restHandlers{s}, orphans: &orphanHandlers{s}, live: &liveHandlers{s}, logs: &logHandlers{s, &semaphore.Keyed{}}, process: &processHandlers{Server: s},
		metrics: &metricsHandlers{s}, host: &hostHandlers{s}, modelCalls: newModelCallHandlers(s), usage: &usageHandlers{s},
		activity: &activityHandlers{s}, alerts: &alertHandlers{s}, backups: &backupHandlers{s}, backupForms: &backupFormHandlers{s}, schedules: &scheduleHandlers{s}, repositories: &repositoryHandlers{s}, snapshots: &snapshotHandlers{s}, snapshotForms: &snapshotFormHandlers{s}, updates: &updateHandlers{s},
		alertSettings: &alertSettingHandlers{s}, volumes: &volumeHandlers{s}, volumeFiles: &fileHandlers{Server: s, ofVolumes: true},
		providers: &providerHandlers{s, offerLimit}, aliases: &aliasHandlers{s}, models: &modelHandlers{Server: s}, chat: &chatHandlers{s}, agents: &agentHandlers{s},
		sharedChat: newSharedChatHandlers(s), trials: &trialHandlers{s},
	}
}
