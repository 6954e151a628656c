-- Change events of a database, as Debezium writes them, kept as a table: rows appear, change and go.
--
--   moldau pipeline run examples/change_events.sql

create stream customer_changes from topic 'shop.customers' changes key (id)
    with (valueSchema = 'id bigint, name string, email string');

create sink customers into database 'customers' key (id) upsert
    with (url = 'sqlite:///customers.db', orderBy = '_changed_at')
    as select id, name, email, _op, _changed_at from customer_changes;
