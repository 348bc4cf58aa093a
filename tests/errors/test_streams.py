"""Wrong sensors, actuators and host operators: each message, and the line that it names."""

import numpy as np
import pytest

import gpuop as gp

from .wrong import SCALAR, Wrongs

WRONGS = Wrongs()
ARRAY = np.ones((4, 5), "f")


@WRONGS.add("a Sensor belongs to a graph; make it inside `with gp.ComputeGraph() as graph:`")
def sensor_outside_a_graph():
    gp.Sensor(SCALAR.type, lambda: ARRAY)  # here


@WRONGS.add("an Actuator belongs to a graph; make it inside `with gp.ComputeGraph() as graph:`")
def actuator_outside_a_graph():
    gp.Actuator(SCALAR, print)  # here


@WRONGS.add("a Sensor wants the FieldType of its frames, not a tuple")
def sensor_of_a_shape():
    with gp.ComputeGraph():
        gp.Sensor((4, 5), lambda: ARRAY)  # here


@WRONGS.add("a Sensor wants a function or an iterable that gives arrays, not an int")
def sensor_of_a_number():
    with gp.ComputeGraph():
        gp.Sensor(SCALAR.type, 5)  # here


@WRONGS.add("a Sensor wants a function or an iterable that gives arrays, not a ScalarField")
def sensor_of_a_field():
    with gp.ComputeGraph():
        gp.Sensor(SCALAR.type, SCALAR)  # here


@WRONGS.add("only a field made from an array has a `.next`")
def next_of_a_sensor():
    with gp.ComputeGraph():
        sensor = gp.Sensor(SCALAR.type, lambda: ARRAY)
        sensor.next = sensor + 1  # here


@WRONGS.add("an Actuator wants a Field, not an ndarray")
def actuator_of_an_array():
    with gp.ComputeGraph():
        gp.Actuator(ARRAY, print)  # here


@WRONGS.add("an Actuator wants a function that takes an array, not a list")
def actuator_into_a_list():
    with gp.ComputeGraph():
        gp.Actuator(SCALAR, [])  # here


@WRONGS.add("a HostOperator wants a function of arrays, not a ScalarField")
def host_operator_without_a_function():
    gp.HostOperator(SCALAR, outputs=SCALAR.type)  # here


@WRONGS.add("host operator `sort` wants Fields, not an int; other values belong into the function")
def host_operator_of_a_number():
    gp.HostOperator(np.sort, SCALAR, 1, outputs=SCALAR.type)  # here


@WRONGS.add("a DeviceOperator wants a function of arrays, not a ScalarField")
def device_operator_without_a_function():
    gp.DeviceOperator(SCALAR, outputs=SCALAR.type)  # here


@WRONGS.add("device operator `sort` wants Fields, not a list; other values belong into the function")
def device_operator_of_a_list():
    gp.DeviceOperator(np.sort, SCALAR, [1], outputs=SCALAR.type)  # here


@WRONGS.add("an output is declared by a FieldType, not by a tuple")
def device_operator_with_a_shape_for_a_type():
    gp.DeviceOperator(np.sort, SCALAR, outputs=((3, 4),))  # here


@WRONGS.add("an output is declared by a FieldType, not by a ScalarField; write `field.type`")
def host_operator_with_a_field_for_a_type():
    gp.HostOperator(np.sort, SCALAR, outputs=SCALAR)  # here


@WRONGS.add("an operator has 1 to 10 outputs, not 0")
def host_operator_without_outputs():
    gp.HostOperator(np.sort, SCALAR, outputs=())  # here


@pytest.mark.parametrize("wrong", WRONGS.all)
def test_wrong(wrong):
    wrong.check()
