package web

// Pages of the model gateway.
const (
	modelsPath    = settingsPath + "/models"
	providersPath = modelsPath + "/providers"
	aliasesPath   = modelsPath + "/aliases"
	budgetsPath   = modelsPath + "/budgets"
)

// table is the providers of models, for programs and as pages. Those of the server are for admins to change.
func (s *providerHandlers) table() []route {
	list, one := apiPrefix+"/providers", apiPrefix+"/providers/:name"
	return []route{
		{get, list, tokenWide, api(s.apiProviders)},
		{get, one, tokenWide, api(s.apiProvider)},
		{put, one, tokenWide, api(s.apiPutProvider)},
		{del, one, tokenWide, api(s.apiDeleteProvider)},
		{post, one + "/check", tokenWide, apiLong(s.apiCheckProvider)},
		{post, providersPath, signedIn, form(s.submitNewProvider, s.againProvider)},
		{get, providersPath + "/new", signedIn, page(s.pageNewProvider)},
		{get, providersPath + "/:name", signedIn, page(s.pageProvider)},
		{post, providersPath + "/:name", signedIn, form(s.submitProvider, s.againProvider)},
		{post, providersPath + "/:name/check", signedIn, form(s.submitCheckProvider, nil)},
		{post, providersPath + "/:name/models", signedIn, form(s.submitListModels, nil)},
		{get, providersPath + "/:name/delete", signedIn, page(s.pageDeleteProvider)},
		{post, providersPath + "/:name/delete", signedIn, form(s.submitDeleteProvider, s.againDeleteProvider)},
	}
}

// table is the aliases of models, for programs and as pages.
func (s *aliasHandlers) table() []route {
	list, one := apiPrefix+"/models/aliases", apiPrefix+"/models/aliases/:name"
	return []route{
		{get, list, tokenWide, api(s.apiAliases)},
		{get, one, tokenWide, api(s.apiAlias)},
		{put, one, tokenWide, api(s.apiPutAlias)},
		{del, one, tokenWide, api(s.apiDeleteAlias)},
		{post, aliasesPath, signedIn, form(s.submitNewAlias, s.againAlias)},
		{get, aliasesPath + "/new", signedIn, page(s.pageNewAlias)},
		{get, aliasesPath + "/:name", signedIn, page(s.pageAlias)},
		{post, aliasesPath + "/:name", signedIn, form(s.submitAlias, s.againAlias)},
		{get, aliasesPath + "/:name/delete", signedIn, page(s.pageDeleteAlias)},
		{post, aliasesPath + "/:name/delete", signedIn, form(s.submitDeleteAlias, nil)},
	}
}

// table is what is set for all models, for programs and as pages.
func (s *modelHandlers) table() []route {
	all := apiPrefix + "/models"
	return []route{
		{get, all, token, api(s.apiModels)},
		{get, all + "/prices", tokenWide, api(s.apiModelPrices)},
		{get, all + "/budgets", tokenWide, api(s.apiBudgets)},
		{put, all + "/budgets", tokenAdmin, api(s.apiPutBudget)},
		{del, all + "/budgets", tokenAdmin, api(s.apiDeleteBudget)},
		{get, all + "/settings", tokenWide, api(s.apiModelSettings)},
		{put, all + "/settings", tokenAdmin, api(s.apiSetModelSettings)},
		{get, modelsPath, signedIn, page(s.pageModels)},
		{post, modelsPath + "/settings", adminOnly, form(s.submitModelSettings, nil)},
		{post, budgetsPath, adminOnly, form(s.submitNewBudget, s.againBudget)},
		{get, budgetsPath + "/new", adminOnly, page(s.pageNewBudget)},
		{get, budgetsPath + "/edit", adminOnly, page(s.pageBudget)},
		{post, budgetsPath + "/edit", adminOnly, form(s.submitBudget, s.againBudget)},
		{get, budgetsPath + "/delete", adminOnly, page(s.pageDeleteBudget)},
		{post, budgetsPath + "/delete", adminOnly, form(s.submitDeleteBudget, nil)},
	}
}
