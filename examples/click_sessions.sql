-- Click-stream sessions: what a visitor did between two pauses of more than half an hour.
--
--   moldau pipeline run examples/click_sessions.sql

create stream clicks from topic 'clicks'
    watermark at delay '10 minutes'
    deduplicate on (id)
    with (valueFormat = json, valueSchema = 'id string, visitor string, page string, at timestamp');

create view sessions as
    select
        visitor,
        session_window.start as begun,
        session_window.end as ended,
        count(*) as clicks,
        first(page) as landed_on
    from clicks
    group by visitor, session_window(at, '30 minutes');

create sink click_sessions into topic 'click-sessions' key (visitor)
    as select * from sessions;
