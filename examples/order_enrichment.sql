-- Orders with what is known about the customer: a stream joined with the newest state of a topic.
--
--   moldau pipeline run examples/order_enrichment.sql

create stream orders from topic 'orders'
    with (valueFormat = json, valueSchema = 'id string, customer string, amount double, at timestamp');

create table customers from topic 'customers' key (id)
    with (valueFormat = json, valueSchema = 'id string, name string, country string');

create view enriched as
    select o.id, o.amount, o.at, o.customer, c.name, c.country
    from orders o left join customers c on o.customer = c.id;

expect has_amount on enriched check (amount is not null and amount > 0) otherwise drop;
expect known_customer on enriched check (name is not null) otherwise warn;

create sink enriched_orders into topic 'orders-enriched' key (id)
    as select * from enriched;
