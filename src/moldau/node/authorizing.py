"""Access control, where it is configured: the authorizer follows the ACLs of the cluster's image on every broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.controller.image import ClusterImage
from moldau.controller.runtime import Controller
from moldau.core.config.broker import BrokerConfig

if TYPE_CHECKING:
    from moldau.broker.authorization import Authorization


def authorization(config: BrokerConfig, controller: Controller) -> Authorization | None:
    """None where every client may do everything."""
    control = config.access_control
    if control is None:
        return None
    from moldau.broker.authorization import Authorization
    from moldau.security.acls.authorizer import Authorizer, parse_super_users

    authorizer = Authorizer(
        super_users=parse_super_users(control.super_users),
        allow_everyone_if_no_acl_found=control.allow_everyone_if_no_acl_found,
    )
    authorizer.follow(controller.image.acls)

    def follow(_: ClusterImage, new: ClusterImage) -> None:
        authorizer.follow(new.acls)

    controller.subscribe(follow)
    return Authorization(authorizer)
