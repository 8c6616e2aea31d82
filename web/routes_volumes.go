package web

import "slices"

// table is the volumes, for programs and as pages, and their files. Members see those of their sandboxes.
func (s *volumeHandlers) table() []route {
	list, one := apiPrefix+volumesPath, apiPrefix+volumesPath+"/:name"
	page1 := volumesPath + "/:name"
	return slices.Concat([]route{
		{get, list, token, api(s.apiVolumes)},
		{post, list, tokenAdmin, api(s.apiCreateVolume)},
		{get, one, token, api(s.apiVolume)},
		{patch, one, tokenAdmin, api(s.apiChangeVolume)},
		{del, one, tokenAdmin, api(s.apiDeleteVolume)},
		{get, one + filesPart + `\:watch`, tokenAdmin, s.live.watch(s.volumeFiles.apiWatchFiles)},
		{get, volumesPath, adminOnly, page(s.pageVolumes)},
		{post, volumesPath, adminOnly, form(s.submitVolume, s.againVolume)},
		{get, volumesPath + "/new", adminOnly, page(s.pageNewVolume)},
		{get, page1, adminOnly, page(s.pageVolume)},
		{post, page1, adminOnly, form(s.submitVolume, s.againVolume)},
		{get, page1 + "/edit", adminOnly, page(s.pageEditVolume)},
		{get, page1 + "/delete", adminOnly, page(s.pageDeleteVolume)},
		{post, page1 + "/delete", adminOnly, form(s.submitDeleteVolume, s.againDeleteVolume)},
		{get, "/sandboxes/:name/volumes", signedIn, page(s.pageBoxVolumes)},
	}, s.filesAt(s.volumeFiles, one, tokenAdmin), s.filesAt(s.volumeFiles, page1, scripted))
}
