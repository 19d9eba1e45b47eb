#!/bin/sh
x
