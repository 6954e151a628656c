-- Cards that pay too often or in too many countries within ten minutes.
--
--   moldau pipeline run examples/fraud_windows.sql

create stream payments from topic 'payments'
    watermark at delay '5 minutes'
    with (valueFormat = json, valueSchema = 'id string, card string, country string, amount double, at timestamp');

create view by_card as
    select
        card,
        window.start as begun,
        window.end as ended,
        count(*) as payments,
        sum(amount) as amount,
        size(collect_set(country)) as countries
    from payments
    group by card, window(at, '10 minutes', '5 minutes');

create sink fraud_alerts into topic 'fraud-alerts' key (card)
    as select * from by_card where payments >= 5 or countries >= 3;
