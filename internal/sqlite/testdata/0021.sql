INSERT INTO last_views (sandbox, view) VALUES ('00000000000000aa', '{"Screen":["$ ls"],"Files":[{"Name":"src","Folder":true}],"Taken":"2026-11-27T00:00:00Z"}');
