#!/bin/sh
y
