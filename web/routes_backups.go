package web

// table is backups, for programs.
func (s *backupHandlers) table() []route {
	box, one := apiPrefix+"/sandboxes/:name", apiPrefix+"/backups/:id"
	return []route{
		{get, box + "/backup", token, apiLong(s.apiDownload)},
		{post, box + "/backups", token, apiLong(s.apiMakeBackup)},
		{put, box + restorePart, token, s.receiving(s.apiRestore)},
		{del, box + restorePart, token, api(s.apiCancelRestore)},
		{post, apiPrefix + restorePart, tokenWide, s.receiving(s.apiRestoreNew)},
		{get, apiPrefix + "/backups", token, api(s.apiBackups)},
		{get, one, token, api(s.apiBackup)},
		{del, one, token, api(s.apiDeleteBackup)},
		{get, one + "/archive", token, apiLong(s.apiArchive)},
	}
}

// pages are backups as pages, and what the pages' script asks for.
func (s *backupHandlers) pages() []route {
	box, one, forms := "/sandboxes/:name", backupsPath+"/:id", s.backupForms
	return []route{
		{get, box + backupsPath, signedIn, page(s.pageBackups)},
		{post, box + backupsPath, signedIn, form(forms.submitBackUp, nil)},
		{put, box + restorePart, scripted, s.receiving(s.apiRestore)},
		{del, box + restorePart, scripted, api(s.apiCancelRestore)},
		{post, box + restorePart + "/cancel", signedIn, form(forms.submitCancelRestore, nil)},
		{post, box + restorePart + "/dismiss", signedIn, form(forms.submitDismissRestore, nil)},
		{post, restorePart, scripted, s.receiving(s.apiRestoreNew)},
		{get, backupsPath, signedIn, page(s.pageAllBackups)},
		{get, one + "/archive", signedIn, apiLong(s.apiArchive)},
		{get, one + "/restore", signedIn, page(forms.pageRestore)},
		{post, one + "/restore", signedIn, form(forms.submitRestore, forms.againRestore)},
		{get, one + "/new", signedIn, page(forms.pageNewFrom)},
		{post, one + "/new", signedIn, form(forms.submitNewFrom, forms.againNewFrom)},
		{get, one + "/delete", signedIn, page(forms.pageDeleteBackup)},
		{post, one + "/delete", signedIn, form(forms.submitDeleteBackup, nil)},
	}
}

// table is backup repositories, for programs and as pages for admins.
func (s *repositoryHandlers) table() []route {
	list, one := apiPrefix+"/repositories", apiPrefix+"/repositories/:name"
	return []route{
		{get, list, token, api(s.apiRepositories)},
		{get, one, token, api(s.apiRepository)},
		{put, one, tokenAdmin, apiLong(s.apiPutRepository)},
		{del, one, tokenAdmin, api(s.apiDeleteRepository)},
		{post, one + "/check", tokenAdmin, apiLong(s.apiCheckRepository)},
		{get, repositoriesPath, adminOnly, page(s.pageRepositories)},
		{post, repositoriesPath, adminOnly, form(s.submitRepository, s.againRepository)},
		{get, repositoriesPath + "/new", adminOnly, page(s.pageNewRepository)},
		{get, repositoriesPath + "/:name", adminOnly, page(s.pageRepository)},
		{post, repositoriesPath + "/:name", adminOnly, form(s.submitRepository, s.againRepository)},
		{post, repositoriesPath + "/:name/check", adminOnly, form(s.submitCheckRepository, nil)},
		{get, repositoriesPath + "/:name/remove", adminOnly, page(s.pageRemoveRepository)},
		{post, repositoriesPath + "/:name/remove", adminOnly, form(s.submitRemoveRepository, nil)},
	}
}

// table is snapshots and clones, for programs.
func (s *snapshotHandlers) table() []route {
	box := apiPrefix + "/sandboxes/:name"
	one := box + snapshotsPart + "/:id"
	return []route{
		{get, box + snapshotsPart, token, api(s.apiSnapshots)},
		{post, box + snapshotsPart, token, apiLong(s.apiTakeSnapshot)},
		{get, one, token, api(s.apiSnapshot)},
		{patch, one, token, api(s.apiChangeSnapshot)},
		{del, one, token, api(s.apiDeleteSnapshot)},
		{post, one + "/restore", token, apiLong(s.apiRevert)},
		{post, one + templatePart, tokenAdmin, apiLong(s.apiMakeTemplate)},
		{get, one + diffPart, token, apiLong(s.apiDiff)},
		{get, one + diffPart + "/file", token, apiLong(s.apiFileDiff)},
		{post, box + clonePart, tokenWide, apiLong(s.apiClone)},
	}
}

// pages are snapshots and clones as pages.
func (s *snapshotHandlers) pages() []route {
	box, forms := "/sandboxes/:name", s.snapshotForms
	one := box + snapshotsPart + "/:id"
	return []route{
		{get, box + snapshotsPart, signedIn, page(s.pageSnapshots)},
		{get, box + snapshotsPart + "/new", signedIn, page(forms.pageNewSnapshot)},
		{post, box + snapshotsPart, signedIn, form(forms.submitSnapshot, forms.againSnapshot)},
		{get, one + diffPart, signedIn, page(s.pageDiff)},
		{get, one + "/edit", signedIn, page(forms.pageEditSnapshot)},
		{post, one + "/edit", signedIn, form(forms.submitEditSnapshot, forms.againEditSnapshot)},
		{get, one + "/restore", signedIn, page(forms.pageRevert)},
		{post, one + "/restore", signedIn, form(forms.submitRevert, forms.againRevert)},
		{post, one + "/undo", signedIn, form(forms.submitRevert, nil)},
		{get, one + templatePart, adminOnly, page(forms.pageMakeTemplate)},
		{post, one + templatePart, adminOnly, form(forms.submitMakeTemplate, forms.againMakeTemplate)},
		{get, one + "/delete", signedIn, page(forms.pageDeleteSnapshot)},
		{post, one + "/delete", signedIn, form(forms.submitDeleteSnapshot, nil)},
		{get, box + clonePart, signedIn, page(forms.pageClone)},
		{post, box + clonePart, signedIn, form(forms.submitClone, forms.againClone)},
	}
}

// table is schedules of backups, for programs.
func (s *scheduleHandlers) table() []route {
	all := apiPrefix + schedulesPath
	return []route{
		{get, all, tokenWide, api(s.apiSchedules)},
		{post, all, tokenWide, api(s.apiCreateSchedule)},
		{get, all + "/:id", tokenWide, api(s.apiSchedule)},
		{patch, all + "/:id", tokenWide, api(s.apiChangeSchedule)},
		{del, all + "/:id", tokenWide, api(s.apiDeleteSchedule)},
		{post, all + "/:id/run", tokenWide, api(s.apiRunSchedule)},
		{get, all + "/:id/runs", tokenWide, api(s.apiScheduleRuns)},
	}
}

// pages are schedules as pages.
func (s *scheduleHandlers) pages() []route {
	one := schedulesPath + "/:id"
	return []route{
		{get, schedulesPath, signedIn, page(s.pageSchedules)},
		{post, schedulesPath, signedIn, form(s.submitNewSchedule, s.againSchedule)},
		{get, schedulesPath + "/new", signedIn, page(s.pageNewSchedule)},
		{get, schedulesPath + "/preview", signedIn, page(s.partPreview)},
		{get, one, signedIn, page(s.pageSchedule)},
		{get, one + "/edit", signedIn, page(s.pageEditSchedule)},
		{post, one + "/edit", signedIn, form(s.submitEditSchedule, s.againSchedule)},
		{post, one + "/run", signedIn, form(s.submitRunSchedule, nil)},
		{post, one + "/switch", signedIn, form(s.submitSwitchSchedule, nil)},
		{get, one + "/delete", signedIn, page(s.pageDeleteSchedule)},
		{post, one + "/delete", signedIn, form(s.submitDeleteSchedule, nil)},
	}
}

// updatePart is the update of a sandbox, or of the sandboxes of a template, below the page of that.
const updatePart = "/update"

// table is updates of sandboxes to newer images, for programs.
func (s *updateHandlers) table() []route {
	box, all := apiPrefix+"/sandboxes/:name"+updatePart, apiPrefix+"/templates/:name"+updatePart
	return []route{
		{get, box, token, api(s.apiUpdate)},
		{post, box, token, apiLong(s.apiUpdateSandbox)},
		{get, all, tokenAdmin, api(s.apiUpdates)},
		{post, all, tokenAdmin, apiLong(s.apiUpdateAll)},
		{del, all, tokenAdmin, api(s.apiCancelUpdate)},
	}
}

// pages are updates as pages.
func (s *updateHandlers) pages() []route {
	box, all := "/sandboxes/:name"+updatePart, "/templates/:name"+updatePart
	return []route{
		{get, box, signedIn, page(s.pageUpdateSandbox)},
		{post, box, signedIn, form(s.submitUpdateSandbox, s.againUpdateSandbox)},
		{get, all, adminOnly, page(s.pageUpdate)},
		{post, all, adminOnly, form(s.submitUpdate, s.againUpdate)},
		{post, all + "/cancel", adminOnly, form(s.submitCancelUpdate, nil)},
	}
}
