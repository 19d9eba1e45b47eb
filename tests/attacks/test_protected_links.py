"""Checks that the target of a protected link is protected: under its own name, without the link, with its contents."""

import os
from pathlib import Path
from typing import Any

import pytest
from attacks.protected import refused
from attacks.test_protected_moves import plant, run, shown_nowhere
from support.sandboxes import has_bubblewrap

from handrail import Workspace


@pytest.fixture(autouse=True)
def _bubblewrap(tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")


@pytest.fixture
def opened(root: Path) -> Any:
    return lambda: Workspace(str(root), approve="auto", protect="secrets")


def test_removed_protected_link_keeps_target_protected(root: Path, opened: Any) -> None:
    plant(root, "conf/real.txt")
    (root / ".env").symlink_to("conf/real.txt")
    with opened() as workspace:
        shown_nowhere(workspace, "conf/real.txt", ".env")
        run(workspace, "rm .env; touch n.pem")
        assert not (root / ".env").is_symlink()
        shown_nowhere(workspace, "conf/real.txt", ".env")
        run(workspace, "mv conf c; touch m.pem")
        shown_nowhere(workspace, "c/real.txt", ".env")
    with opened() as workspace:
        shown_nowhere(workspace, "c/real.txt", ".env")


def test_redirected_protected_link_keeps_old_target_protected(root: Path, opened: Any) -> None:
    plant(root, "conf/real.txt")
    (root / "other.txt").write_text("other\n")
    (root / ".env").symlink_to("conf/real.txt")
    with opened() as workspace:
        run(workspace, "ln -sfn other.txt .env; touch n.pem")
        shown_nowhere(workspace, "conf/real.txt", ".env")


def test_protected_link_to_directory_protects_everything_in_it(root: Path, opened: Any) -> None:
    plant(root, "keys/one", "keys/deep/two")
    (root / ".ssh").symlink_to("keys")
    with opened() as workspace:
        for path in ("keys/one", "keys/deep/two"):
            shown_nowhere(workspace, path, ".ssh")
        refused(workspace, "copilot", "list_dir", {"path": "keys"}, ".ssh")
        refused(workspace, "copilot", "create_file", {"path": "keys/new", "content": "x"}, ".ssh")
        run(workspace, "rm .ssh; touch n.pem; mv keys k; ls keys")
        shown_nowhere(workspace, "keys/deep/two", ".ssh")
    plant(root, "keys/later")
    with opened() as workspace:
        for path in ("keys/one", "keys/deep/two", "keys/later"):
            shown_nowhere(workspace, path, ".ssh")


def test_link_chains_and_links_in_protected_directories_are_followed(root: Path, opened: Any) -> None:
    plant(root, "store/one", "store/far/two", "real.txt")
    (root / "step").symlink_to("real.txt")
    (root / ".env").symlink_to("step")
    (root / ".ssh").mkdir()
    (root / ".ssh/id").symlink_to("../store/one")
    (root / ".aws").symlink_to(root / "aws")  # an absolute link to a directory that contains a link
    (root / "aws").mkdir()
    (root / "aws/more").symlink_to("../store/far")
    with opened() as workspace:
        shown_nowhere(workspace, "real.txt", ".env")
        shown_nowhere(workspace, "store/one", ".ssh")
        shown_nowhere(workspace, "store/far/two", ".aws")
        refused(workspace, "copilot", "read_file", {"path": "step"}, ".env")


def test_rule_with_linked_parent_protects_file_behind_link(root: Path, opened: Any) -> None:
    plant(root, "k/config", "g/gcloud/db")
    (root / ".kube").symlink_to("k")
    (root / ".config").symlink_to("g")
    with opened() as workspace:
        shown_nowhere(workspace, "k/config", "**/.kube/config")
        shown_nowhere(workspace, "g/gcloud/db", "**/.config/gcloud")
        run(workspace, "rm .kube .config; touch n.pem")
        shown_nowhere(workspace, "k/config", "**/.kube/config")
    with opened() as workspace:
        shown_nowhere(workspace, "g/gcloud/db", "**/.config/gcloud")


def test_dangling_protected_link_protects_later_target(root: Path, opened: Any) -> None:
    (root / ".env").symlink_to("later.txt")
    (root / ".ssh").symlink_to("keys")
    with opened() as workspace:
        run(workspace, "true")
        plant(root, "later.txt", "keys/one")
        run(workspace, "cat later.txt keys/one")
        shown_nowhere(workspace, "later.txt", ".env")
        shown_nowhere(workspace, "keys/one", ".ssh")


def test_link_loops_and_links_to_parents_protect_nothing_else(root: Path, opened: Any) -> None:
    (root / "sub").mkdir()
    for name, target in ((".env", ".env"), (".ssh", "."), (".aws", ".."), ("sub/.ssh", "../sub"), (".kube", ".")):
        (root / name).symlink_to(target)
    (root / "sub/open.txt").write_text("open\n")
    with opened() as workspace:
        assert workspace.call("copilot", "read_file", {"path": "sub/open.txt"}).success
        assert "open" in run(workspace, "cat sub/open.txt")


def test_outside_target_of_protected_link_is_hidden_if_readable(root: Path, tmp_path: Path) -> None:
    plant(tmp_path, "data/real.txt")
    (tmp_path / "data/open.txt").write_text("open\n")
    (root / ".env").symlink_to(tmp_path / "data/real.txt")
    os.link(tmp_path / "data/real.txt", root / "twin.txt")
    readable = [str(tmp_path / "data")]
    with Workspace(str(root), approve="auto", protect="secrets", readable=readable) as workspace:
        assert "open" in run(workspace, f"cat {tmp_path}/data/*.txt")
        shown_nowhere(workspace, "twin.txt", ".env")
