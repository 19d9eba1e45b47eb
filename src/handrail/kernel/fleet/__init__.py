"""Touches the machine for fleets: host processes, trees and their packs, directories of a node, files of a run."""
