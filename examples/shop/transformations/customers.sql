-- Computed anew with each update, from the table and not from the topic.
CREATE MATERIALIZED VIEW customers AS
SELECT customer, count(*) AS orders, sum(amount) AS amount, max(at) AS last_order
FROM orders
GROUP BY customer;
