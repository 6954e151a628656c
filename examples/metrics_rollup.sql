-- Measurements rolled up to a row a minute and host, in a SQLite database that a dashboard can ask.
-- A row is brought up to date while its minute lasts, so the table is never behind by more than a batch.
--
--   moldau pipeline run examples/metrics_rollup.sql

create stream metrics from topic 'metrics'
    watermark at delay '2 minutes'
    with (valueFormat = json, valueSchema = 'host string, name string, value double, at timestamp');

create view by_minute as
    select
        host,
        name,
        window.start as minute,
        count(*) as measured,
        min(value) as least,
        avg(value) as average,
        max(value) as most
    from metrics
    group by host, name, window(at, '1 minute');

create sink metrics_by_minute into database 'metrics_by_minute' key (host, name, minute) upsert
    every '2 seconds'
    with (url = 'sqlite:///metrics.db')
    as select * from by_minute;
