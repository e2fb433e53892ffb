-- The audit trail. Rows can only be appended; triggers refuse every other change.

CREATE TABLE audit (
-- on SQLite
    number            INTEGER NOT NULL PRIMARY KEY,
-- on PostgreSQL
    number            BIGINT NOT NULL PRIMARY KEY,
-- on both
    at                BIGINT NOT NULL,
    service           TEXT   NOT NULL,
    outcome           TEXT   NOT NULL,
    status            BIGINT NOT NULL,
    times             BIGINT NOT NULL,
    since             BIGINT,
    request_id        TEXT   NOT NULL,
    global_request_id TEXT   NOT NULL,
    user_id           TEXT   NOT NULL,
    user_name         TEXT   NOT NULL,
    project_id        TEXT   NOT NULL,
    roles             TEXT   NOT NULL,
    service_user_id   TEXT   NOT NULL,
    source            TEXT   NOT NULL,
    method            TEXT   NOT NULL,
    route             TEXT   NOT NULL,
    target            TEXT   NOT NULL,
    action            TEXT   NOT NULL,
    previous          TEXT   NOT NULL,
    hash              TEXT   NOT NULL
);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_project ON audit (project_id, number);
CREATE INDEX audit_request ON audit (request_id);

CREATE TABLE audit_head (
    one    BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    number BIGINT NOT NULL,
    hash   TEXT   NOT NULL
);
INSERT INTO audit_head (one, number, hash)
VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

-- on SQLite
CREATE TRIGGER audit_grows_at_its_end BEFORE INSERT ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_head WHERE number = NEW.number - 1 AND hash = NEW.previous)
BEGIN
    SELECT RAISE(ABORT, 'the audit trail grows at its end alone');
END;
CREATE TRIGGER audit_has_grown AFTER INSERT ON audit
BEGIN
    UPDATE audit_head SET number = NEW.number, hash = NEW.hash;
END;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit trail is not changed');
END;
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit trail is not cut');
END;
-- An update that changes nothing is allowed: a writer locks the head this way.
CREATE TRIGGER audit_head_follows BEFORE UPDATE ON audit_head
WHEN NOT (NEW.one = OLD.one AND NEW.number = OLD.number AND NEW.hash = OLD.hash)
 AND NOT (NEW.one = OLD.one AND NEW.number = OLD.number + 1 AND EXISTS (
        SELECT 1 FROM audit WHERE number = NEW.number AND previous = OLD.hash AND hash = NEW.hash))
BEGIN
    SELECT RAISE(ABORT, 'the head of the audit trail follows its rows');
END;
CREATE TRIGGER audit_head_stays BEFORE DELETE ON audit_head
BEGIN
    SELECT RAISE(ABORT, 'the head of the audit trail follows its rows');
END;
CREATE TRIGGER audit_head_is_one BEFORE INSERT ON audit_head
BEGIN
    SELECT RAISE(ABORT, 'the head of the audit trail follows its rows');
END;

-- on PostgreSQL
CREATE FUNCTION audit_grow() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE audit_head SET number = NEW.number, hash = NEW.hash
     WHERE number = NEW.number - 1 AND hash = NEW.previous;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the audit trail grows at its end alone';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION audit_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is neither changed nor cut';
END $$;
-- An update that changes nothing is allowed: a writer locks the head this way. Only the trigger of an appended row may move the head.
CREATE FUNCTION audit_head_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW IS DISTINCT FROM OLD AND (pg_trigger_depth() < 2 OR NEW.number <> OLD.number + 1) THEN
        RAISE EXCEPTION 'the head of the audit trail follows its rows';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_grows_at_its_end BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_grow();
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_stay();
CREATE TRIGGER audit_is_not_cut BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_stay();
CREATE TRIGGER audit_head_follows BEFORE UPDATE ON audit_head FOR EACH ROW EXECUTE FUNCTION audit_head_follow();
CREATE TRIGGER audit_head_stays BEFORE INSERT OR DELETE ON audit_head FOR EACH ROW EXECUTE FUNCTION audit_stay();
CREATE TRIGGER audit_head_is_not_cut BEFORE TRUNCATE ON audit_head FOR EACH STATEMENT EXECUTE FUNCTION audit_stay();
