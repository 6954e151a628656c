-- A topic kept as a Delta table: each record once, however often the pipeline is killed.
-- What no order can be goes to the topic topic_to_lake.orders.dead-letters.
--
--   moldau pipeline run examples/topic_to_lake.sql --once

create stream orders from topic 'orders'
    with (valueFormat = json, valueSchema = 'id string, customer string, amount double, at timestamp');

expect is_an_order on orders check (id is not null and amount >= 0) otherwise dead letter;

create sink orders_lake into delta './lake/orders'
    as select id, customer, amount, at, date(at) as day from orders;
