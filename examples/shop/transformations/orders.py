"""Orders from their topic into a table, and the large ones into a topic of their own."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
SERVERS = spark.conf.get("shop.bootstrap.servers")


@dp.table(comment="every order that could be read; the others are in the topic orders.dead-letters")
def orders() -> DataFrame:
    records = (
        spark.readStream.format("moldau")
        .option("kafka.bootstrap.servers", SERVERS)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("kafka.isolation.level", "read_committed")
        .option("groupId", "shop-orders")
        .option("valueFormat", "json")
        .option("valueSchema", "id string, customer string, amount double, at timestamp")
        .option("onError", "deadletter")
        .load()
    )
    return records.select("value.*")


dp.create_sink("large_orders", "moldau", {"kafka.bootstrap.servers": SERVERS, "topic": "large-orders"})


@dp.append_flow(target="large_orders")
def send_large_orders() -> DataFrame:
    large = spark.readStream.table("orders").where("amount >= 100")
    return large.selectExpr("customer as key", "to_json(struct(id, amount)) as value")
