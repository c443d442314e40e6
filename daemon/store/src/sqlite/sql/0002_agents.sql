-- The task whose agent a session is; its `parent` is then the session that started it. Sessions with
-- an agent are not listed among those that people opened.
ALTER TABLE session ADD COLUMN agent TEXT;
