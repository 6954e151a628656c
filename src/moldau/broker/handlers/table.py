"""Every API that clients are answered. What is not here is not announced, and what is here is."""

from __future__ import annotations

from moldau.broker.api import Api
from moldau.broker.handlers.add_offsets_to_txn import add_offsets_to_txn
from moldau.broker.handlers.add_partitions_to_txn import add_partitions_to_txn
from moldau.broker.handlers.alter_client_quotas import alter_client_quotas
from moldau.broker.handlers.alter_configs import alter_configs
from moldau.broker.handlers.alter_partition_reassignments import alter_partition_reassignments
from moldau.broker.handlers.alter_replica_log_dirs import alter_replica_log_dirs
from moldau.broker.handlers.alter_user_scram_credentials import alter_user_scram_credentials
from moldau.broker.handlers.api_versions import api_versions
from moldau.broker.handlers.consumer_group_describe import consumer_group_describe
from moldau.broker.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from moldau.broker.handlers.create_acls import create_acls
from moldau.broker.handlers.create_delegation_token import create_delegation_token
from moldau.broker.handlers.create_partitions import create_partitions
from moldau.broker.handlers.create_topics import create_topics
from moldau.broker.handlers.delete_acls import delete_acls
from moldau.broker.handlers.delete_groups import delete_groups
from moldau.broker.handlers.delete_records import delete_records
from moldau.broker.handlers.delete_topics import delete_topics
from moldau.broker.handlers.describe_acls import describe_acls
from moldau.broker.handlers.describe_client_quotas import describe_quotas
from moldau.broker.handlers.describe_cluster import describe_cluster
from moldau.broker.handlers.describe_configs import describe_configs
from moldau.broker.handlers.describe_delegation_token import describe_delegation_token
from moldau.broker.handlers.describe_groups import describe_groups
from moldau.broker.handlers.describe_log_dirs import describe_log_dirs
from moldau.broker.handlers.describe_producers import describe_producers
from moldau.broker.handlers.describe_quorum import describe_quorum
from moldau.broker.handlers.describe_topic_partitions import describe_topic_partitions
from moldau.broker.handlers.describe_transactions import describe_transactions
from moldau.broker.handlers.describe_user_scram_credentials import describe_user_scram_credentials
from moldau.broker.handlers.elect_leaders import elect_leaders
from moldau.broker.handlers.end_txn import end_txn
from moldau.broker.handlers.expire_delegation_token import expire_delegation_token
from moldau.broker.handlers.fetch import fetch
from moldau.broker.handlers.find_coordinator import find_coordinator
from moldau.broker.handlers.heartbeat import heartbeat
from moldau.broker.handlers.incremental_alter_configs import incremental_alter_configs
from moldau.broker.handlers.init_producer_id import init_producer_id
from moldau.broker.handlers.join_group import join_group
from moldau.broker.handlers.leave_group import leave_group
from moldau.broker.handlers.list_config_resources import list_config_resources
from moldau.broker.handlers.list_groups import list_groups
from moldau.broker.handlers.list_offsets import list_offsets
from moldau.broker.handlers.list_partition_reassignments import list_partition_reassignments
from moldau.broker.handlers.list_transactions import list_transactions
from moldau.broker.handlers.metadata import metadata
from moldau.broker.handlers.offset_commit import offset_commit
from moldau.broker.handlers.offset_delete import offset_delete
from moldau.broker.handlers.offset_fetch import offset_fetch
from moldau.broker.handlers.offset_for_leader_epoch import offset_for_leader_epoch
from moldau.broker.handlers.produce import produce
from moldau.broker.handlers.renew_delegation_token import renew_delegation_token
from moldau.broker.handlers.sasl_authenticate import sasl_authenticate
from moldau.broker.handlers.sasl_handshake import sasl_handshake
from moldau.broker.handlers.sync_group import sync_group
from moldau.broker.handlers.txn_offset_commit import txn_offset_commit
from moldau.broker.handlers.unregister_broker import unregister_broker
from moldau.broker.handlers.update_features import update_features
from moldau.broker.handlers.write_txn_markers import write_txn_markers

TABLE: tuple[Api, ...] = (
    produce,
    fetch,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    find_coordinator,
    join_group,
    heartbeat,
    leave_group,
    sync_group,
    describe_groups,
    list_groups,
    api_versions,
    create_topics,
    delete_topics,
    delete_records,
    init_producer_id,
    add_partitions_to_txn,
    add_offsets_to_txn,
    end_txn,
    write_txn_markers,
    txn_offset_commit,
    offset_for_leader_epoch,
    describe_configs,
    alter_configs,
    describe_log_dirs,
    create_partitions,
    delete_groups,
    incremental_alter_configs,
    offset_delete,
    describe_cluster,
    describe_producers,
    update_features,
    create_acls,
    delete_acls,
    describe_acls,
    describe_transactions,
    list_transactions,
    consumer_group_heartbeat,
    consumer_group_describe,
    list_config_resources,
    describe_topic_partitions,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    describe_quorum,
    elect_leaders,
    unregister_broker,
    list_partition_reassignments,
    describe_quotas,
    alter_client_quotas,
    sasl_handshake,
    sasl_authenticate,
    describe_user_scram_credentials,
    alter_user_scram_credentials,
    create_delegation_token,
    renew_delegation_token,
    expire_delegation_token,
    describe_delegation_token,
)
