INSERT INTO repositories (name, identity, place, secrets, kept, created)
VALUES ('nas', '00ff', '{"kind":"sftp","path":"/srv/backups","host":"nas.lan","port":22,"user":"ann","host_key":"ssh-ed25519 AAAA"}', x'0102', NULL, 1700000000000000);
